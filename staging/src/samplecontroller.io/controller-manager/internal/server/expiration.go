// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/x509"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
)

const (
	// expirationInterval is how often the expiration of the serving certificate is checked.
	expirationInterval = 10 * time.Minute
	// longestNotice is the longest time before the expiration at which it is logged. It is a
	// tenth of the lifetime, if that is shorter.
	longestNotice = 7 * 24 * time.Hour
)

// served returns the serving certificate, or nil if there is none.
func served(content dynamiccertificates.CertKeyContentProvider) *x509.Certificate {
	if content == nil {
		return nil
	}
	encoded, _ := content.CurrentCertKeyContent()
	chain, err := certutil.ParseCertsPEM(encoded)
	if err != nil {
		return nil
	}
	return chain[0]
}

// lifetime returns how long a certificate is valid in all.
func lifetime(c *x509.Certificate) time.Duration { return c.NotAfter.Sub(c.NotBefore) }

// logExpiration logs once when the serving certificate expires soon, once when it has expired, and
// once if it is not valid yet, until ctx ends. It follows a renewal.
func logExpiration(ctx context.Context, content dynamiccertificates.CertKeyContentProvider) {
	logger := klog.FromContext(ctx)
	var early, soon, expired time.Time // expiration of the certificate that was logged last
	ticker := time.NewTicker(expirationInterval)
	defer ticker.Stop()
	for {
		if c := served(content); c != nil {
			left := time.Until(c.NotAfter)
			switch {
			case time.Now().Before(c.NotBefore) && !early.Equal(c.NotAfter):
				early = c.NotAfter
				logger.Error(nil, "Serving certificate is not valid yet: clients that verify it cannot connect", "validFrom", c.NotBefore)
			case left <= 0 && !expired.Equal(c.NotAfter):
				expired = c.NotAfter
				logger.Error(nil, "Serving certificate has expired: clients that verify it cannot connect", "expired", c.NotAfter)
			case left > 0 && left < min(lifetime(c)/10, longestNotice) && !soon.Equal(c.NotAfter):
				soon = c.NotAfter
				logger.Error(nil, "Serving certificate expires soon: renew it", "expires", c.NotAfter)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Metrics reports the serving certificate. Values are read at each scrape.
type Metrics struct {
	metrics.BaseStableCollector
	expiration, lifetime *metrics.Desc

	mutex   sync.Mutex
	content dynamiccertificates.CertKeyContentProvider
}

// NewMetrics creates the gauges <namespace>_serving_certificate_expiration_timestamp_seconds
// and <namespace>_serving_certificate_lifetime_seconds and registers them with register,
// usually legacyregistry.CustomMustRegister. Call it once per process.
func NewMetrics(namespace string, register func(...metrics.StableCollector)) *Metrics {
	m := &Metrics{
		expiration: metrics.NewDesc(namespace+"_serving_certificate_expiration_timestamp_seconds",
			"When the certificate that is served now expires, in seconds since 1970.", nil, nil, metrics.ALPHA, ""),
		lifetime: metrics.NewDesc(namespace+"_serving_certificate_lifetime_seconds",
			"How long the certificate that is served now is valid in all, in seconds.", nil, nil, metrics.ALPHA, ""),
	}
	register(m)
	return m
}

// Watch makes the metrics report the certificate of the given configuration instead of an
// earlier one. There are no series while nothing is served.
func (m *Metrics) Watch(config Config) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.content = nil
	if config.SecureServing != nil {
		m.content = config.SecureServing.Cert
	}
}

// DescribeWithStability implements metrics.StableCollector.
func (m *Metrics) DescribeWithStability(descs chan<- *metrics.Desc) {
	descs <- m.expiration
	descs <- m.lifetime
}

// CollectWithStability implements metrics.StableCollector.
func (m *Metrics) CollectWithStability(all chan<- metrics.Metric) {
	m.mutex.Lock()
	content := m.content
	m.mutex.Unlock()
	if c := served(content); c != nil {
		all <- metrics.NewLazyConstMetric(m.expiration, metrics.GaugeValue, float64(c.NotAfter.Unix()))
		all <- metrics.NewLazyConstMetric(m.lifetime, metrics.GaugeValue, lifetime(c).Seconds())
	}
}
