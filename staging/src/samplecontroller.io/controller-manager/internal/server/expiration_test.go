// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// content provides a certificate that can be replaced, as a file that is reloaded does.
type content struct {
	dynamiccertificates.CertKeyContentProvider // the other methods are never called
	encoded                                    atomic.Value
}

func (c *content) CurrentCertKeyContent() (certificate, key []byte) {
	return c.encoded.Load().([]byte), nil
}

// renew provides a certificate that is valid from now on.
func (c *content) renew(t *testing.T, valid time.Duration) {
	t.Helper()
	c.renewFrom(t, time.Now(), valid)
}

// renewFrom provides a certificate that is valid from a given time on.
func (c *content) renewFrom(t *testing.T, begin time.Time, valid time.Duration) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: begin, NotAfter: begin.Add(valid)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c.encoded.Store(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestExpirationIsLogged(t *testing.T) {
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		var c content
		c.renew(t, 100*day)
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		var running sync.WaitGroup
		running.Go(func() { logExpiration(ctx, &c) })
		defer func() { cancel(); running.Wait() }()

		logged := 0
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, entry := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data()[logged:] {
				message, _, _ := strings.Cut(entry.Message, ":")
				got = append(got, message)
			}
			logged += len(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		time.Sleep(93 * day)
		expect("a week before the expiration")
		time.Sleep(time.Hour)
		expect("less than a week before", "Serving certificate expires soon")
		time.Sleep(6 * day)
		expect("still before")
		time.Sleep(2 * day)
		expect("after the expiration", "Serving certificate has expired")
		c.renew(t, day)
		time.Sleep(21 * time.Hour)
		expect("after the renewal, for a day")
		time.Sleep(time.Hour)
		expect("in the last tenth of the day", "Serving certificate expires soon")
		c.renewFrom(t, time.Now().Add(time.Hour), day)
		time.Sleep(30 * time.Minute)
		expect("after a renewal that is valid in an hour", "Serving certificate is not valid yet")
		time.Sleep(2 * time.Hour)
		expect("once it is valid")
	})
}

func TestExpirationMetricsFollowReload(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	m := NewMetrics("test_manager", registry.CustomMustRegister)
	expect := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	series := func(c *content) string {
		return fmt.Sprintf(`# HELP test_manager_serving_certificate_expiration_timestamp_seconds [ALPHA] When the certificate that is served now expires, in seconds since 1970.
# TYPE test_manager_serving_certificate_expiration_timestamp_seconds gauge
test_manager_serving_certificate_expiration_timestamp_seconds %g
# HELP test_manager_serving_certificate_lifetime_seconds [ALPHA] How long the certificate that is served now is valid in all, in seconds.
# TYPE test_manager_serving_certificate_lifetime_seconds gauge
test_manager_serving_certificate_lifetime_seconds %g
`, float64(served(c).NotAfter.Unix()), lifetime(served(c)).Seconds())
	}
	expect("")
	var c content
	c.renew(t, time.Hour)
	m.Watch(Config{SecureServing: &apiserver.SecureServingInfo{Cert: &c}})
	expect(series(&c))
	c.renew(t, 24*time.Hour)
	expect(series(&c))
	m.Watch(Config{})
	expect("")
}
