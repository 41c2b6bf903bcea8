"""What must hold in every world after every step; ``promises`` says it, the modules here check it."""
