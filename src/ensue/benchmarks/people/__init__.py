"""What people do: forms to read and answer, kinds of annotation projects, exports, and people as a model."""
