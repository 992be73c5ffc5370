"""Other programs that run a model of regard faster: CTranslate2."""
