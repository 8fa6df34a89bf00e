"""The ``llmb`` command. Its modules use only the public names of ``llmb``.

``app`` lists the ``commands``. Commands call the library and ``follow`` sessions, and ``views`` turn values into text,
which ``output`` prints.
"""
