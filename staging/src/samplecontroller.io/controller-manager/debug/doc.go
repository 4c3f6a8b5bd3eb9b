// Copyright The sample-controller-manager Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debug serves pages about what each controller of a process is doing, and why:
//
//	/debug/controllers                             all controllers
//	/debug/controllers/<name>                      one of them, by name or alias, with more of its keys
//	/debug/controllers/<name>/<namespace>/<object> what it does about one object
//
// [Handler] serves the pages. A client prints one like this:
//
//	response, err := client.Get(server + debug.Path + "?format=json")
//	if err != nil {
//		return err
//	}
//	defer response.Body.Close()
//	var report debug.Report
//	if err := json.NewDecoder(response.Body).Decode(&report); err != nil {
//		return err
//	}
//	debug.PrintReport(os.Stdout, report)
//	return nil
//
// Pages are text by default, and JSON with an Accept header or ?format=json. Their size is
// bounded. Each list has at most ?limit= entries (default 10, maximum 200) and states its
// total. An error has at most 500 characters. Pages show names, states, counts, errors and
// the [Explanation] of an object by its controller, but never whole objects.
//
// The pages need authorization, which package manager provides.
package debug
