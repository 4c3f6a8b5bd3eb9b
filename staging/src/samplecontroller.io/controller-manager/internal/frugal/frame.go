// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package frugal

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
)

// newline ends an event, and is in none: in strings it is escaped.
var newline = []byte("\n")

// framer takes a stream apart into events. After one that begins as API servers begin one,
// what comes on the same line is an error.
type framer struct{ runtime.Framer }

// NewFrameReader implements runtime.Framer.
func (f framer) NewFrameReader(stream io.ReadCloser) io.ReadCloser {
	return &frameReader{Closer: stream, stream: bufio.NewReader(stream), standard: f.Framer}
}

// frameReader reads an event by each Read that returns no error.
type frameReader struct {
	io.Closer
	stream   *bufio.Reader
	standard runtime.Framer
	within   bool          // the last Read has returned the beginning of an event
	other    io.ReadCloser // reads the rest of a stream of which events are not lines
}

// Read implements io.Reader. It returns io.ErrShortBuffer with a part of an event that does
// not fit.
func (r *frameReader) Read(buffer []byte) (int, error) {
	if r.other == nil && !r.within {
		if err := r.begin(); err != nil {
			return 0, err
		}
	}
	if r.other != nil {
		return r.other.Read(buffer)
	}
	n := 0
	for n < len(buffer) {
		if _, err := r.stream.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}
		part, _ := r.stream.Peek(min(r.stream.Buffered(), len(buffer)-n))
		end := bytes.IndexByte(part, newline[0])
		if end >= 0 {
			part = part[:end+1]
		}
		n += copy(buffer[n:], part)
		_, _ = r.stream.Discard(len(part)) // of what is buffered never fails
		if r.within = end < 0; !r.within {
			return n, nil
		}
	}
	return n, io.ErrShortBuffer
}

// begin waits for an event, and has the standard read it if it does not begin as API servers
// begin one.
func (r *frameReader) begin() error {
	begin, err := r.stream.Peek(len(eventBegin))
	if len(begin) == 0 {
		return err
	}
	if !bytes.Equal(begin, eventBegin) {
		r.other = r.standard.NewFrameReader(struct {
			io.Reader
			io.Closer
		}{r.stream, r.Closer})
	}
	return nil
}
