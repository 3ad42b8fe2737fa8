;; A need that version 1 has: a host without state refuses it by that name.
;; include guest
(data (i32.const 0x410) "\10")
