;; Every mode that is offered gives the trace of that mode.
;; include guest
