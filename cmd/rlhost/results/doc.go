// Package results has the commands about past trainings: eval, runs, plot and export.
//
// They are flags and text, like package main's; pipeline/session, pipeline/compare, pipeline/curves and pipeline/export
// do the work.
package results
