// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	componentbaseconfigv1alpha1 "k8s.io/component-base/config/v1alpha1"
	"k8s.io/component-base/configz"
	cmconfigv1alpha1 "k8s.io/controller-manager/config/v1alpha1"

	"samplecontroller.io/controller-manager/options"
)

// configuration is the configuration as /configz shows it.
type configuration struct {
	metav1.TypeMeta `json:",inline"`
	// Generic holds the settings that all controller managers have.
	Generic cmconfigv1alpha1.GenericControllerManagerConfiguration `json:"generic"`
	// ControllerFlags maps the name of each controller-specific flag to its value. It includes
	// the flags of disabled controllers.
	ControllerFlags map[string]string `json:"controllerFlags"`
	// Namespace is the only namespace that the controllers serve; empty means all.
	Namespace string `json:"namespace"`
	// UseServiceAccountCredentials is whether each controller writes as its own ServiceAccount.
	UseServiceAccountCredentials bool `json:"useServiceAccountCredentials"`
	// ControllerShutdownTimeout is how long to wait for the controllers to stop.
	ControllerShutdownTimeout metav1.Duration `json:"controllerShutdownTimeout"`
	// SyncTimeout is how long the sync of one object may take.
	SyncTimeout metav1.Duration `json:"syncTimeout"`
	// WarmStandby is whether a process campaigns only after its caches are filled.
	WarmStandby bool `json:"warmStandby"`
	// WriteTimeout limits each write of a controller.
	WriteTimeout metav1.Duration `json:"writeTimeout"`
}

// DeepCopyObject implements runtime.Object, which /configz requires.
func (c *configuration) DeepCopyObject() runtime.Object {
	copied := *c
	copied.Generic = *c.Generic.DeepCopy()
	copied.ControllerFlags = maps.Clone(c.ControllerFlags)
	return &copied
}

// serveConfigz adds the configuration to /configz, which is global to the process. The
// returned function removes it.
func (p Program) serveConfigz(c *options.Config) (remove func(), err error) {
	group := p.configGroup()
	page, err := configz.New(group)
	if err != nil {
		return nil, fmt.Errorf("registering configz: %w", err)
	}
	if err := page.Set(p.Configz(c)); err != nil {
		return nil, fmt.Errorf("setting configz: %w", err)
	}
	return func() { configz.Delete(group) }, nil
}

// camelCase returns QuotaManager for quota-manager.
func camelCase(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		b.WriteString(strings.ToUpper(word[:min(1, len(word))]) + word[min(1, len(word)):])
	}
	return b.String()
}

// configGroup returns the API group of the configuration, which is also its name in /configz.
func (p Program) configGroup() string {
	return strings.ReplaceAll(p.Name, "-", "") + ".config.samplecontroller.io"
}

// Configz returns the configuration as /configz shows it. Its Controllers are the enabled
// ones.
func (p Program) Configz(c *options.Config) runtime.Object {
	lease, debugging := c.LeaderElection, c.Server.Debugging
	return &configuration{
		TypeMeta: metav1.TypeMeta{APIVersion: p.configGroup() + "/v1alpha1", Kind: camelCase(p.Name) + "Configuration"},
		Generic: cmconfigv1alpha1.GenericControllerManagerConfiguration{
			MinResyncPeriod: metav1.Duration{Duration: c.MinResyncPeriod},
			ClientConnection: componentbaseconfigv1alpha1.ClientConnectionConfiguration{
				ContentType: c.Client.ContentType,
				QPS:         c.Client.QPS,
				Burst:       int32(c.Client.Burst),
			},
			ControllerStartInterval: metav1.Duration{Duration: c.ControllerStartInterval},
			LeaderElection: componentbaseconfigv1alpha1.LeaderElectionConfiguration{
				LeaderElect:       &lease.LeaderElect,
				LeaseDuration:     lease.LeaseDuration,
				RenewDeadline:     lease.RenewDeadline,
				RetryPeriod:       lease.RetryPeriod,
				ResourceLock:      lease.ResourceLock,
				ResourceName:      lease.ResourceName,
				ResourceNamespace: lease.ResourceNamespace,
			},
			Controllers: c.Enabled,
			Debugging: componentbaseconfigv1alpha1.DebuggingConfiguration{
				EnableProfiling:           &debugging.EnableProfiling,
				EnableContentionProfiling: &debugging.EnableContentionProfiling,
			},
		},
		ControllerFlags:           c.ControllerFlags,
		Namespace:                 c.Namespace,
		ControllerShutdownTimeout: metav1.Duration{Duration: c.ControllerShutdownTimeout},
		SyncTimeout:               metav1.Duration{Duration: c.SyncTimeout},
		WarmStandby:               c.WarmStandby,
		WriteTimeout:              metav1.Duration{Duration: lease.WriteTimeout},

		UseServiceAccountCredentials: c.UseServiceAccountCredentials,
	}
}
