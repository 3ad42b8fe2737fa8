;; Records of arguments whose length is no multiple of 4.
;; include guest
(data (i32.const 0x41e) "\32")
(data (i32.const 0x428) "\01")
(data (i32.const 0x780) "\01\00\00\00\00\00\00\00\04")
