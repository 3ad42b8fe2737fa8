;; An environment of which there is at most one in a batch: a host makes no two.
;; include guest
(data (i32.const 0x434) "\01\00\00\00")
