// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release builds the container image of the daemon, its SBOMs, the list of licenses and the
// files of a release around the binaries, which hack/build-image.sh and hack/build-release.sh build
// first. Its output depends only on its input. Run it in the root of the repository.
//
//	release licenses                       prints a table of the linked modules
//	release texts COMMAND linux/amd64...   prints the licenses of what a command links
//	release sbom -version V BINARY         prints the SBOM of a binary
//	release archive FLAGS linux/amd64=BINARY,SBOM...  writes an OCI archive and prints its digest
//	release notes -version V               prints the section of the changelog
//	release install -image REF DIRECTORY... prints the objects of kustomizations
//	release write FLAGS DIRECTORY...       completes the release in the directory -output
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// options are the flags and arguments.
type options struct {
	version, tag, revision string
	image, repository      string
	digest, cryptography   string
	licenses, builds       string
	output, without        string
	variables              string
	created                time.Time
	args                   []string
}

func main() {
	commands := map[string]func(options) error{
		"licenses": func(options) error { return printTable() },
		"texts":    options.printTexts,
		"sbom":     options.printBOM,
		"archive":  options.writeArchive,
		"notes":    options.printNotes,
		"install":  options.printObjects,
		"write":    options.write,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "Usage: release licenses|texts|sbom|archive|notes|install|write [FLAGS] [ARGUMENTS]")
		os.Exit(2)
	}
	var o options
	flags := flag.NewFlagSet("release "+os.Args[1], flag.ExitOnError)
	flags.StringVar(&o.version, "version", "", "version of the release")
	flags.StringVar(&o.tag, "tag", "", "tag of the image")
	flags.StringVar(&o.revision, "revision", "", "commit that everything is built from")
	flags.StringVar(&o.image, "image", "", "archive: name and tag of the image; install: the image; "+
		"write: registry and name of the image, if there is one")
	flags.StringVar(&o.repository, "repository", "", "URL of the repository")
	flags.StringVar(&o.digest, "digest", "", "digest of the image")
	flags.StringVar(&o.cryptography, "cryptography", "", "cryptographic module in the binaries")
	flags.StringVar(&o.licenses, "licenses", "", "file with the texts of the licenses")
	flags.StringVar(&o.builds, "builds", "", "directory with licenses.txt and the plugin's binaries, "+
		"each in a directory such as linux-amd64")
	flags.StringVar(&o.output, "output", "", "archive: file to write; write: directory that has the image and its SBOMs")
	flags.StringVar(&o.without, "without", "", "kinds to leave out, separated by commas")
	flags.StringVar(&o.variables, "variables", "", "variables of make release")
	created := flags.Int64("created", 0, "time of the commit in Unix seconds")
	_ = flags.Parse(os.Args[2:]) // exits on errors
	o.created, o.args = time.Unix(*created, 0).UTC(), flags.Args()
	if err := commands[os.Args[1]](o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (o options) printNotes() error {
	section, err := changes(o.version)
	if err == nil {
		fmt.Println(section)
	}
	return err
}

func (o options) printObjects() error {
	without := strings.Split(o.without, ",")
	objects, err := build(o.args, o.image, func(kind string) bool { return !slices.Contains(without, kind) })
	if err == nil {
		_, err = os.Stdout.Write(objects)
	}
	return err
}
