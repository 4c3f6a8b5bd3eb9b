// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"samplecontroller.io/controller-manager/internal/requests"
)

// userPrefix begins the user name of a ServiceAccount.
const userPrefix = "system:serviceaccount:"

// ErrNoToken is the error of a write that is not sent, because no token of the controller's account can be obtained.
// What the API server answers about the token says nothing about the object.
var ErrNoToken = errors.New("no token")

type noToken struct{ error }

func (e noToken) Is(target error) bool { return target == ErrNoToken }

func (e noToken) Unwrap() error { return e.error }

// Accounts makes each controller write as a ServiceAccount of its own. The program requests
// their tokens. It does not create the accounts. Accounts is safe for concurrent use.
type Accounts struct {
	ctx     context.Context // for requests of tokens, which have no context of their own
	client  kubernetes.Interface
	timeout time.Duration

	mutex    sync.Mutex
	program  cache.ObjectName    // the account of the program; empty until it is known
	accounts map[string]*account // by controller
}

// NewAccounts returns the accounts of the controllers of the program that has these
// credentials. Each request of a token is limited to timeout, and ends with ctx.
func NewAccounts(ctx context.Context, config *restclient.Config, timeout time.Duration) (*Accounts, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the ServiceAccounts of the controllers: %w", err)
	}
	return &Accounts{ctx: ctx, client: client, timeout: timeout, accounts: map[string]*account{}}, nil
}

// ofProgram returns the ServiceAccount of the program. It asks the API server once.
func (a *Accounts) ofProgram(ctx context.Context) (cache.ObjectName, error) {
	a.mutex.Lock()
	program := a.program
	a.mutex.Unlock()
	if program.Name != "" {
		return program, nil
	}
	review, err := a.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	if err != nil {
		return cache.ObjectName{}, fmt.Errorf("asking for the program's ServiceAccount: %w", err)
	}
	user := review.Status.UserInfo.Username
	namespace, name, found := strings.Cut(strings.TrimPrefix(user, userPrefix), ":")
	if !found || !strings.HasPrefix(user, userPrefix) {
		return cache.ObjectName{}, fmt.Errorf("--use-service-account-credentials: the program must run as a ServiceAccount, but runs as %q", user)
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.program = cache.NewObjectName(namespace, name)
	return a.program, nil
}

// Check returns an error if no token of the controller's account can be obtained.
func (a *Accounts) Check(controller string) error {
	_, err := a.accountOf(controller).get(context.WithoutCancel(a.ctx)) // the request has a timeout
	return err
}

// Wrap returns a wrapper of the transport of a controller's clients, which makes it write with
// the account of the controller. Reads keep the credentials of the program, because the
// controllers share what it reads.
func (a *Accounts) Wrap(controller string) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return &accountTransport{a.accountOf(controller), next, "the ServiceAccount of " + controller}
	}
}

// Failure returns why the last request of a token for a controller failed, and since when
// requests fail. The error is nil if it succeeded, or if no token was needed for a while.
func (a *Accounts) Failure(controller string) (err error, since time.Time) {
	return a.accountOf(controller).failure()
}

// accountOf returns a controller's account, which all clients of the controller share.
func (a *Accounts) accountOf(controller string) *account {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	of := a.accounts[controller]
	if of == nil {
		logger := klog.LoggerWithValues(klog.FromContext(a.ctx), "controller", controller)
		of = &account{logger: logger, request: func() (token, error) { return a.request(controller) }}
		a.accounts[controller] = of
	}
	return of
}

// request requests a token.
func (a *Accounts) request(controller string) (token, error) {
	ctx, cancel := context.WithTimeout(a.ctx, a.timeout)
	defer cancel()
	program, err := a.ofProgram(ctx)
	if err != nil {
		return token{}, err
	}
	// In the namespace of the program's own account.
	name := cache.NewObjectName(program.Namespace, program.Name+"-"+controller)
	requested := time.Now() // the clock of the API server may differ
	response, err := a.client.CoreV1().ServiceAccounts(name.Namespace).CreateToken(ctx, name.Name,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return token{}, fmt.Errorf("requesting a token of ServiceAccount %s, as which %s writes: %w", name, controller, err)
	}
	lifetime := time.Duration(ptr.Deref(response.Spec.ExpirationSeconds, 3600)) * time.Second
	// A kubelet, too, renews a token after 80% of its lifetime.
	return token{value: response.Status.Token, renew: requested.Add(lifetime * 8 / 10), expires: requested.Add(lifetime)},
		nil
}

// accountTransport leaves reads unchanged, and sends writes with the credentials of an account.
type accountTransport struct {
	account *account
	next    http.RoundTripper
	owner   string // of the credentials of writes
}

// RoundTrip implements http.RoundTripper. It does not wait for a token beyond the end of the
// request's context.
func (t *accountTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if !requests.IsWrite(request) {
		return t.next.RoundTrip(request)
	}
	value, err := t.account.get(request.Context())
	if err != nil {
		if request.Body != nil {
			request.Body.Close() // required of every RoundTripper
		}
		return nil, noToken{err}
	}
	request = net.CloneRequest(request)
	request = request.WithContext(withOwner(request.Context(), t.owner))
	request.Header.Set("Authorization", "Bearer "+value) // replaces a fixed token of the program
	response, err := t.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		t.account.reject(value)
	}
	return response, err
}

// WrappedRoundTripper makes the transport transparent to client-go.
func (t *accountTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
