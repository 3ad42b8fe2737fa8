// Package site holds what make docs builds the pages with: MkDocs with Material's theme, whose versions are in requirements.txt.
package site
