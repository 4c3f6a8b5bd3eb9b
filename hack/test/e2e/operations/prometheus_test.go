// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"samplecontroller.io/sample-controller-manager/hack/test/cluster"
	"samplecontroller.io/sample-controller-manager/hack/test/cluster/clustertest"
	"samplecontroller.io/sample-controller-manager/hack/test/framework"
	"samplecontroller.io/sample-controller-manager/hack/test/monitoring"
)

// scrapeInterval is the scrape interval of a Prometheus in a test.
const scrapeInterval = 2 * time.Second

// prometheus is a Prometheus whose targets are replicas of the daemon.
type prometheus struct {
	*framework.Program
	api    promv1.API
	config monitoring.Config
	dir    string
}

// installMonitoring installs manifests/monitoring with components, which are directories in
// it, and returns the manifests.
func installMonitoring(t *testing.T, components ...string) *monitoring.Manifests {
	t.Helper()
	overlay := t.TempDir()
	base, err := filepath.Rel(overlay, framework.Manifests(t, "monitoring"))
	if err != nil {
		t.Fatal(err)
	}
	kustomization := "resources:\n- " + base + "\ncomponents:\n"
	for _, component := range components {
		kustomization += "- " + filepath.Join(base, component) + "\n"
	}
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}

	// The API server checks alerts and ServiceMonitor against prometheus-operator's CRDs.
	crds := filepath.Join(framework.Manifests(t, ".."), "hack", "test", "monitoring", "testdata", "monitoring.coreos.com_")
	install := []string{"apply", "--server-side", "-f", crds + "servicemonitors.yaml", "-f", crds + "prometheusrules.yaml"}
	framework.Kubectl(t, install...)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, args := range [][]string{{"delete", "--ignore-not-found", "-k", overlay}, append([]string{"delete"}, install[2:]...)} {
			if _, err := framework.Cluster().Kubectl(ctx, args...); err != nil {
				t.Error(err)
			}
		}
	})
	clustertest.WaitUntil(t, "the manifests are accepted", func(ctx context.Context) error {
		_, err := framework.Cluster().Kubectl(ctx, "apply", "--warnings-as-errors", "-k", overlay)
		if err != nil && !strings.Contains(err.Error(), "no matches for kind") { // may take a moment
			t.Fatal(err)
		}
		return err
	})
	m, err := monitoring.Parse(framework.Kubectl(t, "kustomize", overlay))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// startPrometheus starts a Prometheus that is configured by the manifests.
func startPrometheus(t *testing.T, m *monitoring.Manifests, interval time.Duration,
	targets ...monitoring.Target) *prometheus {
	t.Helper()
	paths, err := cluster.Binaries(t.Context(), os.Stderr, "prometheus")
	if err != nil {
		t.Fatal(err)
	}
	p := &prometheus{dir: t.TempDir()}
	p.config = monitoring.Config{Manifests: m, Targets: targets, Interval: interval,
		Secret: func(key monitoring.SecretKey) ([]byte, error) {
			return secretValue(t, key), nil
		}}
	config, err := p.config.Write(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", framework.FreePort(t))
	p.Program = framework.StartProgram(t, paths["prometheus"],
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(p.dir, "data"), "--web.listen-address="+address)
	client, err := promapi.NewClient(promapi.Config{Address: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	p.api = promv1.NewAPI(client)
	return p
}

// secretValue waits until a Secret in the daemon's namespace has a value, and returns it.
func secretValue(t *testing.T, key monitoring.SecretKey) (value []byte) {
	t.Helper()
	clustertest.WaitUntil(t, "Secret "+key.Name+" has a "+key.Key, func(ctx context.Context) error {
		secret, err := framework.Kube().CoreV1().Secrets(framework.DaemonName).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if value = secret.Data[key.Key]; len(value) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	return value
}

// query returns the current result of a query.
func (p *prometheus) query(ctx context.Context, query string) (model.Vector, error) {
	value, _, err := p.api.Query(ctx, query, time.Now())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	return value.(model.Vector), nil
}

// mustQuery is query, but fails the test on an error.
func (p *prometheus) mustQuery(query string) model.Vector {
	p.T.Helper()
	found, err := p.query(p.T.Context(), query)
	if err != nil {
		p.T.Fatal(err)
	}
	return found
}

// waitFound waits until a query returns this many series, and returns them.
func (p *prometheus) waitFound(query string, want int) (found model.Vector) {
	p.T.Helper()
	clustertest.WaitUntil(p.T, fmt.Sprintf("%s returns %d series", query, want), func(ctx context.Context) (err error) {
		if found, err = p.query(ctx, query); err == nil && len(found) != want {
			err = fmt.Errorf("%d series: %v", len(found), found)
		}
		return err
	})
	return found
}

// waitScraped waits until the replicas were scraped this many more times.
func (p *prometheus) waitScraped(times int) {
	p.T.Helper()
	before := p.mustQuery(`sum(count_over_time(up[1d]))`)[0].Value
	p.waitFound(fmt.Sprintf(`sum(count_over_time(up[1d])) >= %v`, int(before)+times*len(p.config.Targets)), 1)
}

// TestPrometheusVerifiesCertificate scrapes a replica with a given certificate, and one with a
// self-signed certificate, which cannot be verified.
func TestPrometheusVerifiesCertificate(t *testing.T) {
	framework.Long(t)
	framework.FreeLease(t)
	m := installMonitoring(t, "tls")
	server := m.Endpoint.TLSConfig.ServerName
	if m.Endpoint.TLSConfig.InsecureSkipVerify || server == "" {
		t.Fatalf("the certificate is not verified: %+v", m.Endpoint.TLSConfig)
	}
	ca := framework.NewAuthority(t, "serving-ca")
	certificate, key := ca.Sign(t, server, time.Now().AddDate(1, 0, 0)).Files(t)
	secrets := framework.Kube().CoreV1().Secrets(framework.DaemonName)
	name := m.Endpoint.TLSConfig.CA.Secret.Name
	if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name},
		Data: map[string][]byte{"ca.crt": ca.Pem()}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := secrets.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	given := framework.StartReplica(t, "--tls-cert-file="+certificate, "--tls-private-key-file="+key).Ready()
	selfSigned := framework.StartReplica(t).Ready()
	p := startPrometheus(t, m, scrapeInterval,
		monitoring.Target{Address: strings.TrimPrefix(given.URL, "https://"), Pod: "given"},
		monitoring.Target{Address: strings.TrimPrefix(selfSigned.URL, "https://"), Pod: "self-signed"})
	p.waitFound(`up{pod="given"} == 1`, 1)
	p.waitFound(`up{pod="self-signed"} == 0`, 1)
	targets, err := p.api.Targets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range targets.Active {
		if target.Labels["pod"] == "self-signed" && !strings.Contains(target.LastError, "certificate") {
			t.Errorf("the scrape failed for another reason: %s", target.LastError)
		}
	}
}
