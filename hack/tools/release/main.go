// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release writes the files of a release, except for the image and the binaries, which
// hack/release/build.sh builds first. Its output depends only on its input. Run it in the root of
// the repository.
//
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

// options are the flags.
type options struct {
	version, tag, revision string
	image, repository      string
	builds, output         string
	without                string
	fips                   bool
	created                time.Time
	// kustomizations are the directories that make up the installation.
	kustomizations []string
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "Usage: release notes|install|write [FLAGS] [DIRECTORY...]")
		os.Exit(2)
	}
	var o options
	flags := flag.NewFlagSet("release "+os.Args[1], flag.ExitOnError)
	flags.StringVar(&o.version, "version", "", "version to release")
	flags.StringVar(&o.tag, "tag", "", "tag of the image")
	flags.StringVar(&o.revision, "revision", "", "commit to release")
	flags.StringVar(&o.image, "image", "", "install: the image; write: registry and name of the image, if there is one")
	flags.StringVar(&o.repository, "repository", "", "URL of the repository")
	flags.StringVar(&o.builds, "builds", "", "directory with licenses.txt and the plugin's binaries, each in a directory such as linux-amd64")
	flags.StringVar(&o.output, "output", "", "directory that has the image and its SBOMs")
	flags.StringVar(&o.without, "without", "", "kinds to leave out, separated by commas")
	flags.BoolVar(&o.fips, "fips", false, "whether this is the FIPS variant")
	created := flags.Int64("created", 0, "time of the commit in Unix seconds")
	_ = flags.Parse(os.Args[2:]) // exits on errors
	o.created = time.Unix(*created, 0).UTC()
	o.kustomizations = flags.Args()
	if err := o.run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (o options) run(command string) error {
	switch command {
	case "notes":
		section, err := changes(o.version)
		if err != nil {
			return err
		}
		fmt.Println(section)
		return nil
	case "install":
		without := strings.Split(o.without, ",")
		objects, err := build(o.kustomizations, o.image, func(kind string) bool { return !slices.Contains(without, kind) })
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(objects)
		return err
	case "write":
		return o.write()
	}
	return fmt.Errorf("unknown command %q", command)
}
