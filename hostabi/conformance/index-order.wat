;; An index that does not count up from 0.
;; include guest
(data (i32.const 0x502) "\01")
