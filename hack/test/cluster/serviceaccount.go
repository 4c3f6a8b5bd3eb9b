// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// LocalTokenLifetime is how long tokens for a local cluster are valid: longer than any cluster
// runs.
const LocalTokenLifetime = 30 * 24 * time.Hour

// ServiceAccountKubeconfig calls [ServiceAccountKubeconfig] for this cluster.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (path string, err error) {
	return ServiceAccountKubeconfig(ctx, c.Kubeconfig, c.Dir, namespace, name, LocalTokenLifetime)
}

// ServiceAccountKubeconfig requests a token of a ServiceAccount as an admin, and writes it and
// a kubeconfig that uses it to new files in dir. Each call gets a new token, because each
// replica of a daemon needs its own. The token is valid for the given lifetime, unless the API
// server grants less.
func ServiceAccountKubeconfig(ctx context.Context, adminKubeconfig, dir, namespace, name string,
	lifetime time.Duration) (path string, err error) {
	adminConfig, err := loadConfig(adminKubeconfig)
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(adminConfig)
	if err != nil {
		return "", fmt.Errorf("making the admin's client: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(lifetime.Seconds())),
	}}
	response, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	tokenFile, err := os.CreateTemp(dir, name+"-*.token")
	if err != nil {
		return "", fmt.Errorf("making the token file: %w", err)
	}
	_, err = tokenFile.WriteString(response.Status.Token)
	if err := errors.Join(err, tokenFile.Close()); err != nil {
		return "", fmt.Errorf("writing the token: %w", err)
	}
	admin, err := loadKubeconfig(adminKubeconfig)
	if err != nil {
		return "", err
	}
	if err := clientcmdapi.MinifyConfig(admin); err != nil {
		return "", fmt.Errorf("kubeconfig %s: %w", adminKubeconfig, err)
	}
	current := admin.Contexts[admin.CurrentContext]
	current.AuthInfo, current.Namespace = name, namespace
	admin.AuthInfos = map[string]*clientcmdapi.AuthInfo{name: {TokenFile: tokenFile.Name()}}
	path = strings.TrimSuffix(tokenFile.Name(), ".token") + ".kubeconfig"
	return path, clientcmd.WriteToFile(*admin, path)
}

// CredentialID returns the ID of a kubeconfig's token in the audit log. It distinguishes
// replicas that share a ServiceAccount.
func CredentialID(ctx context.Context, kubeconfig string) (string, error) {
	config, err := loadConfig(kubeconfig)
	if err != nil {
		return "", err
	}
	client, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for the ID of a token: %w", err)
	}
	return strings.Join(review.Status.UserInfo.Extra["authentication.kubernetes.io/credential-id"], " "), nil
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

// loadConfig returns the client configuration of a kubeconfig's current context, without
// client-side rate limit.
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
