"""What the reference implementation makes of the small encoders: `python tests/models/reference.py` writes it down.

Needs `pip install "torch>=2.6" "transformers>=5.0"`. Writes `reference.json`, with which the converter is compared
wherever the tests run.
"""

import json
from pathlib import Path

import torch
from small_encoders import SMALL_ENCODERS, SmallEncoder, make_ids, make_projections, make_tensors
from transformers import AutoConfig, AutoModel

FILE = Path(__file__).with_name("reference.json")
DECIMALS = 5


def embed(encoder: SmallEncoder, ids: list[int]) -> list[float]:
    """Return the unit vector of a text."""
    settings = dict(encoder.config)
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    model = AutoModel.from_config(config, attn_implementation="eager", add_pooling_layer=False).eval()
    weights = {name: torch.from_numpy(tensor) for name, tensor in make_tensors(encoder.config).items()}
    model.load_state_dict(weights, strict=True)
    with torch.no_grad():
        tokens = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        value = tokens.mean(dim=0) if encoder.pooling == "mean" else tokens[0]
        for weight, bias, end in make_projections(encoder):
            value = torch.from_numpy(weight) @ value
            value = value if bias is None else value + torch.from_numpy(bias)
            value = torch.tanh(value) if end == "Tanh" else value
    unit = value / value.norm()
    return [round(number, DECIMALS) for number in unit.tolist()]


def make_reference() -> dict[str, list[list[float]]]:
    """Return the vectors of the texts of each small encoder."""
    return {name: [embed(encoder, ids) for ids in make_ids(encoder)] for name, encoder in SMALL_ENCODERS.items()}


if __name__ == "__main__":
    vectors = make_reference()
    lines = [f"{json.dumps(name)}: {json.dumps(rows, separators=(',', ':'))}" for name, rows in vectors.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
