"""One file per command. Commands import views inside functions, because ``llmb --help`` needs none of them."""
