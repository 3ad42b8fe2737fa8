// Package modules has the commands about single modules.
package modules
