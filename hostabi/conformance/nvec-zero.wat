;; An element of a MultiDiscrete action has no values.
;; include guest
(data (i32.const 0x487) "\01") (data (i32.const 0x48c) "\02")
(data (i32.const 0x4ac) "\00") (data (i32.const 0x4b4) "\00\06") (data (i32.const 0xa00) "\03\00\00\00\00\00\00\00")
