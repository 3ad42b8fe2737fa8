;; A mode of autoreset that version 1 does not have, besides one that it has: the host ignores it.
;; include guest
(data (i32.const 0x43c) "\0f")
