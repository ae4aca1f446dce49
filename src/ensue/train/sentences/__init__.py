"""Sentence encoders trained from nothing on GLUE and SuperGLUE: bags of words and BiLSTMs.

The names of what is trained are here, apart from the networks, which need torch.
"""

CBOW, BILSTM, ATTENTION = "cbow", "bilstm", "bilstm-attention"
ARCHITECTURES = (CBOW, BILSTM, ATTENTION)
