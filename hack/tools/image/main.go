// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image builds the container image of the daemon, its SBOMs and the list of licenses.
// Its output depends only on its input. Run it in the root of the repository.
//
//	image licenses                       prints a table of the linked modules
//	image texts COMMAND linux/amd64...   prints the licenses of what a command links
//	image sbom -version V BINARY         prints the SBOM of a binary
//	image archive FLAGS linux/amd64=BINARY,SBOM...  writes an OCI archive and prints its digest
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

// daemon is the command that the image runs.
const daemon = "sample-controller-manager"

// options are the flags.
type options struct {
	name, version, revision string
	toolchain, cryptography string
	licenses, output        string
	created                 time.Time
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "Usage: image licenses|texts|sbom|archive [FLAGS] [ARGUMENTS]")
		os.Exit(2)
	}
	var o options
	flags := flag.NewFlagSet("image "+os.Args[1], flag.ExitOnError)
	flags.StringVar(&o.name, "name", "", "name and tag of the image")
	flags.StringVar(&o.version, "version", "", "version of the daemon")
	flags.StringVar(&o.revision, "revision", "", "commit that the image was built from")
	flags.StringVar(&o.toolchain, "toolchain", "", "Go release that built the binaries")
	flags.StringVar(&o.cryptography, "cryptography", "", "cryptographic module in the binaries")
	flags.StringVar(&o.licenses, "licenses", "", "file with the texts of the licenses")
	flags.StringVar(&o.output, "output", "", "file to write")
	created := flags.Int64("created", 0, "time of the commit in Unix seconds")
	_ = flags.Parse(os.Args[2:]) // exits on errors
	o.created = time.Unix(*created, 0).UTC()
	if err := o.run(os.Args[1], flags.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (o options) run(command string, args []string) error {
	switch {
	case command == "licenses":
		return printTable()
	case command == "texts" && len(args) > 1:
		return printTexts(args[0], args[1:]...)
	case command == "sbom" && len(args) == 1:
		return printBOM(o.version, args[0])
	case command == "archive":
		return o.writeArchive(args)
	}
	return fmt.Errorf("invalid arguments %q of command %s", args, command)
}
