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

// configuration is the configuration in the form that /configz shows it.
type configuration struct {
	metav1.TypeMeta `json:",inline"`
	// Generic is what every controller manager has.
	Generic cmconfigv1alpha1.GenericControllerManagerConfiguration `json:"generic"`
	// ControllerFlags has the values of the controllers' own flags by name of the flag, also
	// of disabled controllers.
	ControllerFlags map[string]string `json:"controllerFlags"`
	// Namespace is the one that the controllers serve, empty for all.
	Namespace string `json:"namespace"`
	// ControllerShutdownTimeout is how long controllers are waited for at the end.
	ControllerShutdownTimeout metav1.Duration `json:"controllerShutdownTimeout"`
	// SyncTimeout is how long the sync of one object may take.
	SyncTimeout metav1.Duration `json:"syncTimeout"`
	// WarmStandby says whether a process campaigns only when its caches are filled.
	WarmStandby bool `json:"warmStandby"`
	// WriteTimeout bounds each write of a controller.
	WriteTimeout metav1.Duration `json:"writeTimeout"`
}

// DeepCopyObject implements runtime.Object, which /configz asks for.
func (c *configuration) DeepCopyObject() runtime.Object {
	copied := *c
	copied.Generic = *c.Generic.DeepCopy()
	copied.ControllerFlags = maps.Clone(c.ControllerFlags)
	return &copied
}

// serveConfigz makes /configz show the configuration. Pages exist once in a process; the
// returned function removes this one.
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

// configGroup is the API group of the configuration, and the name that it has at /configz.
func (p Program) configGroup() string {
	return strings.ReplaceAll(p.Name, "-", "") + ".config.samplecontroller.io"
}

// Configz returns a configuration as /configz shows it. Controllers are those that are
// enabled in the end.
func (p Program) Configz(c *options.Config) runtime.Object {
	lease, debugging := c.LeaderElection, c.Server.Debugging
	return &configuration{
		TypeMeta: metav1.TypeMeta{APIVersion: p.configGroup() + "/v1alpha1", Kind: camelCase(p.Name) + "Configuration"},
		Generic: cmconfigv1alpha1.GenericControllerManagerConfiguration{
			MinResyncPeriod: metav1.Duration{Duration: c.MinResyncPeriod},
			ClientConnection: componentbaseconfigv1alpha1.ClientConnectionConfiguration{
				ContentType: c.ContentType,
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
	}
}
