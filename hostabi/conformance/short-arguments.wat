;; Records of arguments shorter than version 1 has them.
;; include guest
(data (i32.const 0x41e) "\2c")
(data (i32.const 0x428) "\01")
(data (i32.const 0x780) "\01\00\00\00\00\00\00\00\04")
