;; A need that the host does not know: refused as what it does not run yet.
;; include guest
;; include slot
(data (i32.const 0x40f) "\80")
