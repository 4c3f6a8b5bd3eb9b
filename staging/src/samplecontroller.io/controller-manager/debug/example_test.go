// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"samplecontroller.io/controller-manager/debug"
)

// printReport prints what the controllers of a process are doing.
func printReport(client *http.Client, server string) error {
	response, err := client.Get(server + debug.Path + "?format=json")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var report debug.Report
	if err := json.NewDecoder(response.Body).Decode(&report); err != nil {
		return err
	}
	debug.PrintReport(os.Stdout, report)
	return nil
}

// The client must be authorized to get /debug/controllers.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"time":"2026-01-02T03:04:05Z","controllers":[{"name":%q,"state":"Running","since":"2026-01-02T03:04:00Z"}]}`, r.URL.Path)
	}))
	defer server.Close()
	if err := printReport(server.Client(), server.URL); err != nil {
		fmt.Println(err)
	}
	// Output:
	// CONTROLLER          STATE    FOR  RUN  WAIT  DELAY  FAIL  LAST
	// /debug/controllers  Running  5s   0    0     0      0     -
}
