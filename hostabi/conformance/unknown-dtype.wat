;; A known role in a type that version 1 does not have.
;; include guest
(data (i32.const 0x506) "\63")
