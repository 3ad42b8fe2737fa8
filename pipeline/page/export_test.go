package page

import js "github.com/rlhost/rlhost/sdk/js"

// Engine is the part of the page's script that needs no page.
var Engine = js.Bundle() + "\n" + game
