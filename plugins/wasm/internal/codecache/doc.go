// Package codecache keeps compiled modules on disk.
//
// Their code is run, and wazero does not check it for damage, so a Cache returns only its own output: its folder belongs to this user
// and is closed to others, and every entry ends in a MAC under a key that is kept there too. It needs Linux.
package codecache

import "os"

// Code is a module compiled by wazero, as wazero writes it to a file. Its owner closes it.
type Code struct {
	Name string // of the file, in hexadecimal, of NameBytes
	File *os.File
}

// NameBytes is the length of Code.Name.
const NameBytes = 64

// TemporaryPrefix begins the names of files and folders that are about to be renamed or removed. Open removes old ones.
const TemporaryPrefix = "tmp-"

// Close closes the file.
func (c *Code) Close() error { return c.File.Close() }
