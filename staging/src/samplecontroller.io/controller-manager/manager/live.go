// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"samplecontroller.io/controller-manager/controller"
	"samplecontroller.io/controller-manager/internal/options"
	"samplecontroller.io/controller-manager/internal/supervisor"
	"samplecontroller.io/controller-manager/internal/truncate"
)

// configInterval is how often the configuration file is read. Reading works for each kind of volume, while
// events of the file system do not.
const configInterval = time.Second

// liveConfig applies changes of the configuration file while the process runs.
type liveConfig struct {
	options *options.Options
	metrics *configMetrics
	refused atomic.Pointer[string] // why the content of the file is not in effect; nil: it is
	paused  map[string]time.Time   // the controllers that were paused at the last change
}

// follow reads the file until ctx ends. It calls apply with the flags that have changed.
func (l *liveConfig) follow(ctx context.Context, apply func(changed ...*pflag.Flag)) {
	logger := klog.FromContext(ctx)
	ticker := time.NewTicker(configInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch reload := l.options.File.Poll(); {
		case reload == nil:
		case reload.Refused != nil:
			l.refuse(reload.Refused)
			logger.Error(reload.Refused, "Refused configuration file, keeping the settings in effect")
		default:
			l.accept()
			apply(reload.Flags...)
			logger.Info("Applied configuration file", "changes", reload.Changes)
		}
	}
}

func (l *liveConfig) refuse(err error) {
	why := truncate.Text(strings.Join(strings.Fields(err.Error()), " ")) // in one line
	l.refused.Store(&why)
	l.metrics.reloads.WithLabelValues("refused").Inc()
	l.metrics.refused.Set(1)
}

func (l *liveConfig) accept() {
	l.refused.Store(nil)
	l.metrics.reloads.WithLabelValues("applied").Inc()
	l.metrics.refused.Set(0)
}

// problem returns why the content of the file is not in effect, "" if it is.
func (l *liveConfig) problem() string {
	if l == nil {
		return ""
	}
	if why := l.refused.Load(); why != nil {
		return *why
	}
	return ""
}

// apply puts the settings that can change into effect. changed are the flags that the file has changed.
func (p parts) apply(super *supervisor.Supervisor, changed ...*pflag.Flag) {
	enabled, err := p.config.Controllers.Enabled(p.config.Generic.Selection.Get())
	if err != nil {
		return // the check of --controllers has passed
	}
	off := sets.New(p.config.Controllers.Names()...).Delete(enabled...)
	p.shared.SwitchOff(off) // first, so that nothing is written while they stop
	super.Switch(enabled)
	if paused := p.config.Generic.PausedControllers.Get().Until; !maps.Equal(paused, p.live.paused) {
		for _, name := range enabled {
			p.shared.PauseChanged(name)
		}
		p.live.paused = paused
	}
	for _, c := range p.controllers {
		p.shared.WorkersChanged(c.Name())
	}
	for _, flag := range changed {
		if _, ok := flag.Value.(*controller.LiveDuration); ok {
			p.shared.IntervalChanged()
			break
		}
	}
}

// buildSpare makes the controllers that are not enabled, but that read nothing else than those that are, so
// that they can be switched on. Without a configuration file, nothing can switch them on.
func (p Program) buildSpare(ctx context.Context, c *options.Config, shared *controller.Shared,
	built []controller.Controller) []controller.Controller {
	if c.File == nil {
		return built
	}
	spare := c.Controllers.BuildSpare(ctx, shared)
	return slices.Concat(built, spare)
}

// refuseUnbuilt makes a change of --controllers fail that enables a controller which was not built.
func refuseUnbuilt(c *options.Config, built []controller.Controller) {
	known := sets.New[string]()
	for _, b := range built {
		known.Insert(b.Name())
	}
	c.Generic.Selection.Also(func(selection []string) error {
		enabled, err := c.Controllers.Enabled(selection)
		for _, name := range enabled {
			if !known.Has(name) {
				err = errors.Join(err, fmt.Errorf("%s was not built at the start, because it reads other resources than the enabled controllers, or failed: "+
					"enabling it needs a restart", name))
			}
		}
		return err
	})
}

// refuseUnpausable returns an error if the flag --paused-controllers names a controller that would not heed it, and
// makes a change of it fail that does.
func refuseUnpausable(c *options.Config, shared *controller.Shared, built []controller.Controller) error {
	paused := c.Generic.PausedControllers
	paused.Also(func(p options.Pauses) (err error) {
		for _, b := range built {
			isBuilt := controller.Unbuilt([]controller.Controller{b}) == nil // else it writes nothing anyway
			if _, named := p.Until[b.Name()]; named && isBuilt && !shared.MayPause(b.Name()) {
				err = errors.Join(err, fmt.Errorf("%s cannot be paused, because it is not made with controller.For: leave it out, and disable it by --controllers=*,-%s",
					b.Name(), b.Name()))
			}
		}
		return err
	})
	if err := paused.Check(); err != nil {
		return fmt.Errorf("--paused-controllers: %w", err)
	}
	return nil
}

// configMetrics count the changes of the configuration file.
type configMetrics struct {
	reloads *metrics.CounterVec
	refused *metrics.Gauge
}

func newConfigMetrics(namespace string, register func(...metrics.Registerable)) *configMetrics {
	m := &configMetrics{
		reloads: metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace:      namespace,
			Name:           "config_reloads_total",
			Help:           "Number of changes of the configuration file while the process ran, by result (applied, refused).",
			StabilityLevel: metrics.ALPHA,
		}, []string{"result"}),
		refused: metrics.NewGauge(&metrics.GaugeOpts{
			Namespace:      namespace,
			Name:           "config_refused",
			Help:           "1 if the content of the configuration file is not in effect, because it is invalid or needs a restart; 0 if it is.",
			StabilityLevel: metrics.ALPHA,
		}),
	}
	register(m.reloads, m.refused)
	for _, result := range []string{"applied", "refused"} {
		m.reloads.WithLabelValues(result)
	}
	return m
}
