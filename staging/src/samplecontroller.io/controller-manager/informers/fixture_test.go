// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	secrets    = corev1.SchemeGroupVersion.WithResource("secrets")

	notFound  = apierrors.NewGenericServerResponse(404, "list", configMaps.GroupResource(), "", "", 0, true)
	forbidden = apierrors.NewForbidden(configMaps.GroupResource(), "", fmt.Errorf("no rule allows it"))
	broken    = apierrors.NewInternalError(errors.New("conversion webhook failed"))
	tooLarge  = &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonTimeout,
		Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}}}}
	// unreachable is the error of client-go when the API server does not respond.
	unreachable = &url.Error{Op: "Get", URL: "https://api.test/api/v1", Err: errors.New("connection refused")}
)

// bubble is the environment of a test in a synctest bubble. There time passes only when every
// goroutine waits, and the test fails if one leaks.
type bubble struct {
	*testing.T
	ctx                           context.Context
	configMapServer, secretServer *apiServer
	factory                       *Factory
	log                           ktesting.Buffer
}

// inBubble runs a test in a bubble, once with servers that stream and once without.
func inBubble(t *testing.T, test func(*bubble)) {
	for name, lists := range map[string]bool{"by list and watch": true, "by stream": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
				b := &bubble{
					T:               t,
					ctx:             klog.NewContext(t.Context(), logger),
					configMapServer: &apiServer{lists: lists, version: 1},
					secretServer:    &apiServer{lists: lists, version: 1},
					factory:         NewFactory(),
					log:             logger.GetSink().(ktesting.Underlier).GetBuffer(),
				}
				defer b.factory.Shutdown()
				test(b)
			})
		})
	}
}

// sendBookmarks sends a bookmark to all watches every minute, as API servers do.
func (b *bubble) sendBookmarks() {
	ctx := b.Context()
	go func() {
		for ctx.Err() == nil {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			for _, s := range []*apiServer{b.configMapServer, b.secretServer} {
				s.mutex.Lock()
				s.send(watch.Bookmark, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(s.version)}})
				s.mutex.Unlock()
			}
		}
	}()
}

func (b *bubble) configMaps(opts ...Option) cache.TypedSharedIndexInformer[*corev1.ConfigMap] {
	return InformerFor[*corev1.ConfigMap](b.factory, configMaps, b.configMapServer, opts...)
}

func (b *bubble) secrets() cache.TypedSharedIndexInformer[*corev1.ConfigMap] {
	return InformerFor[*corev1.ConfigMap](b.factory, secrets, b.secretServer)
}

// waitForSync waits until all informers have synced. It returns false if the test ends first.
func (b *bubble) waitForSync() bool {
	var checkers []cache.DoneChecker
	for _, i := range b.factory.all() {
		checkers = append(checkers, i.HasSyncedChecker())
	}
	return cache.WaitFor(b.ctx, "", checkers...)
}

// logged returns the messages logged since the last call. Errors start with "!".
func (b *bubble) logged() []string {
	var messages []string
	for _, entry := range b.log.Data() {
		switch {
		case entry.Type == ktesting.LogError:
			messages = append(messages, "!"+entry.Message)
		case strings.HasPrefix(entry.Message, "Warning: event bookmark expired"): // from client-go
		default:
			messages = append(messages, entry.Message)
		}
	}
	return messages
}

// held returns the names and UIDs of the objects in the cache.
func held(informer cache.SharedInformer) map[string]types.UID {
	held := map[string]types.UID{}
	for _, obj := range informer.GetStore().List() {
		object := obj.(*corev1.ConfigMap)
		held[object.Name] = object.UID
	}
	return held
}
