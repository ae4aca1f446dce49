"""What runs are shown by: figures, tables, pages and pictures, whatever the benchmark."""

from ensue.lazy import make_callable

make_callable(__name__)
