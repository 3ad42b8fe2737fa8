// Package authortest tests runtimes of components that authors write against sdk/component: each runs the same scribe.
package authortest
