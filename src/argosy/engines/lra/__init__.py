"""Long-running applications beside tasks: the two schedulers that Medea and its baselines are made of.

    manager    the constraint manager: what is active, validated on submission
    cluster    node groups, static tags and running containers, read off a view
    sight      which constraints a baseline can see
    scheduler  the loop: LRAs collected per interval, tasks by queues, one allocator

This package is no engine; it is what several are made of.
"""
