;; The string table does not end with a NUL.
;; include guest
(data (i32.const 0xc1f) "x")
