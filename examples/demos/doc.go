// Package demos has no code: its folders are demonstrations in scripts, and its tests run them.
package demos
