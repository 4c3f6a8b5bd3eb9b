// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/featuregate"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/options"
)

// Program is a controller manager: a command that hosts controllers in one process. Its
// descriptors hold the values of flags, so it serves one command.
type Program struct {
	// Name of the program: of its command, Lease, certificate, user agents and /configz
	// page. Its metrics begin with it, with _ instead of -. It is a lower-case DNS label.
	Name string
	// Description says in --help what the program is for. Optional.
	Description string
	// Port of HTTPS by default; 0: nothing is served unless --secure-port says otherwise.
	Port int
	// Controllers is the controller map.
	Controllers []controller.Descriptor
	// Scheme adds kinds that are not of Kubernetes to a scheme, for Events about them and for
	// [controller.For].
	// Optional.
	Scheme func(*runtime.Scheme) error
	// FeatureGates are the program's own. Optional.
	FeatureGates map[featuregate.Feature]featuregate.VersionedSpecs
}

// errLogged stands for an error that has been logged where it occurred.
var errLogged = errors.New("already logged")

// Main runs the program with the arguments of the process until SIGINT or SIGTERM, and
// returns the exit code: 0, or 1 after an error that it has reported. A second signal ends
// the process at once. It is called once in a process, before anything else.
func Main(p Program) int {
	// First of all, so that a signal at any later moment ends the process in order.
	ctx := genericapiserver.SetupSignalContext()
	return Execute(ctx, p, os.Args[1:])
}

// Execute is [Main] with the given arguments, until ctx ends.
func Execute(ctx context.Context, p Program, args []string) int {
	command := NewCommand(p, p.Options())
	command.SetArgs(args)
	command.SetContext(ctx)
	err := cli.RunNoErrOutput(command)
	if err == nil {
		return 0
	}
	if !errors.Is(err, errLogged) {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
	}
	return 1
}

// Options returns the settings of the program, with their defaults. It panics if a
// descriptor or a feature gate is not valid: see [controller.NewRegistry].
func (p Program) Options() *options.Options {
	o := options.New(p.Name, p.Port, controller.NewRegistry(p.Controllers...))
	utilruntime.Must(o.FeatureGates.AddVersioned(p.FeatureGates))
	return o
}
