// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// The quota-manager maintains a ResourceQuota for each ConfigMap labeled
// example.com/quota=true, and writes a message to the status of each Greeting.
package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/manager"
)

func main() { os.Exit(manager.Main(program())) }

func program() manager.Program {
	return manager.Program{
		Name: "quota-manager", Port: 10263, Scheme: addToScheme,
		Controllers: []controller.Descriptor{quota(), greeter()},
	}
}

func quota() controller.Descriptor {
	return controller.Descriptor{
		Name: "quota-controller", Workers: 2,
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			configMaps := controller.For[*corev1.ConfigMap](c, controller.Selector("example.com/quota=true"))
			quotas := controller.Owns[*corev1.ResourceQuota](configMaps, controller.MayDelete())
			return configMaps.Reconcile(func(ctx context.Context, r *controller.Request[*corev1.ConfigMap]) error {
				configMap, ok := r.Object()
				if !ok { // deleted, or no longer labeled
					return quotas.Delete(ctx, r, r.Key().Name)
				}
				pods, err := resource.ParseQuantity(configMap.Data["pods"])
				if err != nil {
					return controller.UserError("BadData", err)
				}
				_, err = quotas.Ensure(ctx, r, configMap.Name, func(q *corev1.ResourceQuota) {
					q.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: pods}
				})
				return err
			})
		},
	}
}

func greeter() controller.Descriptor {
	greeting := "Hello"
	return controller.Descriptor{
		Name: "greeting-controller", Workers: 2,
		Flags: func(fs *pflag.FlagSet) {
			fs.StringVar(&greeting, "greeting", greeting, "Text at the start of the message of a Greeting.")
		},
		New: func(_ context.Context, c *controller.Context) (controller.Controller, error) {
			greetings := controller.For[*Greeting](c, controller.MayPatchStatus())
			return greetings.Reconcile(func(ctx context.Context, r *controller.Request[*Greeting]) error {
				g, ok := r.Object()
				if !ok {
					return nil
				}
				g.Status.Message = greeting + ", " + g.Spec.Name + "!"
				return r.UpdateStatus(ctx, g)
			})
		},
	}
}
