// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testreport reads what `go test -json` writes and writes what go test itself
// would. To a file it appends what failed and why, without the logs of the daemon among
// which that is lost. The flag -v is as that of go test.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	verbose := flag.Bool("v", false, "show all that tests say, as they say it")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "Usage: go test -json ... | testreport [-v] FILE")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(os.Stdin, os.Stdout, flag.Arg(0), *verbose); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, path string, verbose bool) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the file for failures: %w", err)
	}
	r := newReport(out, file, verbose)
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			r.add(e)
		} else {
			fmt.Fprintf(out, "%s", line) // go itself has something to say
		}
		if err == io.EOF {
			return file.Close()
		}
		if err != nil {
			return fmt.Errorf("reading the results: %w", err)
		}
	}
}
