;; The string table does not begin with the empty string.
;; include guest
(data (i32.const 0xc00) "x")
