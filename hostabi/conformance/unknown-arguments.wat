;; An argument of a type, and with a flag, that version 1 does not have: the host takes it as a text, and ignores the flag.
;; include guest
(data (i32.const 0x428) "\01") ;; one argument
(data (i32.const 0x780) "\0f\00\00\00\00\00\00\00\4d\00\00\00\00\00\00\80" "\00\00\00\00\00\00\f8\7f\00\00\00\00\00\00\f8\7f" "\14\00\00\00\00\00\00\00")
(data (i32.const 0xc0f) "size\009\00")
