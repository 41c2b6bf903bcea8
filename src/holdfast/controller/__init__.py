"""The only writer of lifecycle state: takes in requests and reports, decides, commits and publishes.

Start reading at ``controller.Controller.tick``. ``state`` is its memory. Each kind of ``workloads`` collects facts, has
the domain decide, and stores the result.
"""
