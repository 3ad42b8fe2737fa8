// Package table turns tables of a file or a document into structs, strictly, and reports errors in them as the coded
// error that all checks of this project share.
//
//	config := settings{Horizon: 128} // missing keys keep the default
//	if err := table.Decode(table.Plain(doc), &config); err != nil {
//		return err // Errors, one for each key that is wrong
//	}
//
// Fields are named by their toml tags. A time.Duration is written "200us", an integer with the option bytes "16MiB" or
// as a number, a type with UnmarshalText in its own words. Unknown keys are errors that suggest the nearest known one.
//
// The package reads no files: the caller that does passes a Value, and locates errors by the values in them.
package table
