// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// The program archive makes the container image of the daemon: an OCI archive with an
// image for each platform, or, for a Docker engine to load, one image alone. It is the
// same, to the byte, for the same binaries.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// options say what to make.
type options struct {
	name      string
	version   string
	revision  string
	created   time.Time
	licenses  string
	output    string
	forDocker bool
}

func main() {
	var o options
	var created int64
	flag.StringVar(&o.name, "name", "", "name and tag of the image")
	flag.StringVar(&o.version, "version", "", "version of the daemon")
	flag.StringVar(&o.revision, "revision", "", "commit that it was built from")
	flag.Int64Var(&created, "created", 0, "when it was made, in seconds since 1970")
	flag.StringVar(&o.licenses, "licenses", "", "file with the texts of the licences")
	flag.StringVar(&o.output, "output", "", "file to write")
	flag.BoolVar(&o.forDocker, "docker", false, "write what 'docker load' takes, for the only platform that is given")
	flag.Parse()
	o.created = time.Unix(created, 0).UTC()
	if err := o.run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run makes an image of each binary, given as linux/amd64=FILE.
func (o options) run(binaries []string) error {
	tag, err := name.NewTag(o.name)
	if err != nil {
		return err
	}
	var images []platformImage
	for _, given := range binaries {
		platform, file, _ := strings.Cut(given, "=")
		parsed, err := v1.ParsePlatform(platform)
		if err != nil {
			return err
		}
		image, err := o.image(*parsed, file)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		images = append(images, platformImage{*parsed, image})
	}
	if o.forDocker {
		if len(images) != 1 {
			return fmt.Errorf("a Docker engine loads one platform, not %d", len(images))
		}
		return tarball.WriteToFile(o.output, tag, images[0].image)
	}
	digest, err := o.writeArchive(tag, images)
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return nil
}
