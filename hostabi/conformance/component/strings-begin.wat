;; The string table does not begin with the empty string.
;; include guest
;; include slot
(data (i32.const 0x5b0) "x")
