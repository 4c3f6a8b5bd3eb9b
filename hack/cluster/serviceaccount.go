// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// tokenLifetime is asked for; the API server may grant another.
const tokenLifetime = time.Hour

// ServiceAccountKubeconfig is [NewCredentials] for this cluster: the path of a
// kubeconfig that acts as the ServiceAccount, for an hour. Each call makes a
// token of its own, one for each replica of a daemon.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (path string, err error) {
	credentials, err := NewCredentials(ctx, c.Kubeconfig, c.Dir, namespace, name)
	if err != nil {
		return "", err
	}
	return credentials.Kubeconfig, nil
}

// Credentials are a kubeconfig that acts as a ServiceAccount through a token in
// a file of its own, which clients read again now and then.
type Credentials struct {
	// Kubeconfig is the path of the kubeconfig.
	Kubeconfig string

	client          kubernetes.Interface
	namespace, name string
	tokenFile       string
	granted, expiry time.Time
}

// NewCredentials asks the cluster of an admin's kubeconfig for a token of a
// ServiceAccount and writes it, with a kubeconfig for it, to new files in dir.
func NewCredentials(ctx context.Context, adminKubeconfig, dir, namespace, name string) (*Credentials, error) {
	config, err := loadConfig(adminKubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the admin's client: %w", err)
	}
	tokenFile, err := os.CreateTemp(dir, name+"-*.token")
	if err != nil {
		return nil, fmt.Errorf("making the token file: %w", err)
	}
	if err := tokenFile.Close(); err != nil {
		return nil, err
	}
	c := &Credentials{
		Kubeconfig: tokenFile.Name()[:len(tokenFile.Name())-len(".token")] + ".kubeconfig",
		client:     client, namespace: namespace, name: name, tokenFile: tokenFile.Name(),
	}
	if err := c.Renew(ctx); err != nil {
		return nil, err
	}
	return c, c.writeKubeconfig(adminKubeconfig)
}

// Renew replaces the token by a new one. The file never holds a part of one. Not
// to be called while [Credentials.KeepFresh] runs.
func (c *Credentials) Renew(ctx context.Context) error {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(tokenLifetime.Seconds())),
	}}
	now := time.Now()
	response, err := c.client.CoreV1().ServiceAccounts(c.namespace).CreateToken(ctx, c.name, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking for a token of ServiceAccount %s/%s: %w", c.namespace, c.name, err)
	}
	partial := c.tokenFile + ".partial"
	if err := os.WriteFile(partial, []byte(response.Status.Token), 0o600); err != nil {
		return fmt.Errorf("writing the token: %w", err)
	}
	if err := os.Rename(partial, c.tokenFile); err != nil {
		return fmt.Errorf("writing the token: %w", err)
	}
	c.granted, c.expiry = now, response.Status.ExpirationTimestamp.Time
	return nil
}

// KeepFresh renews the token each time half of its life is over, and returns
// when the context ends. A failure is reported and tried again.
func (c *Credentials) KeepFresh(ctx context.Context, report func(error)) {
	const retry = 30 * time.Second
	wait := c.expiry.Sub(c.granted) / 2
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := c.Renew(ctx); err != nil {
			if ctx.Err() == nil {
				report(err)
			}
			wait = retry
			continue
		}
		wait = c.expiry.Sub(c.granted) / 2
	}
}

// writeKubeconfig writes the admin's kubeconfig with the user replaced.
func (c *Credentials) writeKubeconfig(adminKubeconfig string) error {
	admin, err := loadKubeconfig(adminKubeconfig)
	if err != nil {
		return err
	}
	current, ok := admin.Contexts[admin.CurrentContext]
	if !ok || admin.Clusters[current.Cluster] == nil {
		return fmt.Errorf("kubeconfig %s: the current context %q names no cluster", adminKubeconfig, admin.CurrentContext)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = admin.Clusters[current.Cluster]
	config.AuthInfos[c.name] = &clientcmdapi.AuthInfo{TokenFile: c.tokenFile}
	config.Contexts[c.name] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: c.name, Namespace: c.namespace}
	config.CurrentContext = c.name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig of %s: %w", c.name, err)
	}
	return os.WriteFile(c.Kubeconfig, content, 0o600)
}

// CredentialID returns the ID by which the audit log calls the token of a kubeconfig:
// replicas with a ServiceAccount in common are told apart by it.
func CredentialID(kubeconfig string) (string, error) {
	config, err := loadConfig(kubeconfig)
	if err != nil {
		return "", err
	}
	token, err := os.ReadFile(config.BearerTokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	parts := strings.Split(string(token), ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("the token has %d parts, want 3", len(parts))
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", fmt.Errorf("decoding the token: %w", err)
	}
	var claims struct{ JTI string }
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", fmt.Errorf("decoding the token: %w", err)
	}
	return "JTI=" + claims.JTI, nil
}

// loadKubeconfig reads one kubeconfig file and makes its paths absolute.
func loadKubeconfig(path string) (*clientcmdapi.Config, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: absolute}
	config, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return config, nil
}

// loadConfig returns the client configuration of a kubeconfig's current
// context, without client-side rate limit.
func loadConfig(path string) (*rest.Config, error) {
	kubeconfig, err := loadKubeconfig(path)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kubeconfig %s", path), err)
	}
	config.QPS = -1
	return config, nil
}
