// Package page makes a page of one file in which an environment and a policy play: in a browser, from a disk and offline.
//
//	html, err := page.Make(&page.Content{Title: "cartpole@1", Module: module, Versions: versions})
//
// The page holds the environment's module, the policy's as package export writes them, and the host of package sdk/js. It loads nothing
// else, and its own policy forbids it to. A module that this host cannot run is said on the page.
//
// Modules are compressed, and versions of a policy share the bytes of its interpreter. Weights stay float32: rounded ones would choose other
// actions than the program does.
package page
