;; A shape whose product does not fit.
;; include guest
(data (i32.const 0x507) "\02") (data (i32.const 0x50c) "\00\00\00\40\00\00\00\40")
