"""The names of what is trained here, as `--model` takes them; apart from the networks, which need torch."""

CBOW, BILSTM, ATTENTION = "cbow", "bilstm", "bilstm-attention"
ARCHITECTURES = (CBOW, BILSTM, ATTENTION)
